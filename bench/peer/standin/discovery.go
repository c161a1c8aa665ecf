package standin

import "strings"

type document = map[string]any

// discovery has the documents that tell what is served; nil for any other path.
func (s *Server) discovery(path string) any {
	gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	if strings.HasPrefix(path, "/api") && len(s.resources(gv)) > 0 {
		return document{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": s.resources(gv)}
	}
	groups := s.groups()
	for _, group := range groups {
		if path == "/apis/"+group["name"].(string) {
			group["kind"], group["apiVersion"] = "APIGroup", "v1"
			return group
		}
	}
	return map[string]any{
		"/api":     document{"kind": "APIVersions", "apiVersion": "v1", "versions": []string{"v1"}},
		"/apis":    document{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
		"/version": document{"major": "1", "minor": "37", "gitVersion": "v1.37.1", "platform": "linux/amd64"},
		"/readyz":  "ok", "/livez": "ok", "/healthz": "ok",
	}[path]
}

func (s *Server) groups() (groups []document) {
	for _, k := range s.kinds {
		if k.group == "" || len(groups) > 0 && groups[len(groups)-1]["name"] == k.group {
			continue
		}
		version := document{"groupVersion": k.gv, "version": "v1"}
		groups = append(groups, document{"name": k.group, "versions": []document{version}, "preferredVersion": version})
	}
	return groups
}

func (s *Server) resources(gv string) (resources []document) {
	verbs := strings.Fields("create delete get list patch update watch")
	for _, k := range s.kinds {
		if k.gv != gv {
			continue
		}
		for _, sub := range []string{"", "/status"} {
			resources = append(resources, document{"name": k.plural + sub, "singularName": strings.ToLower(k.kind), "namespaced": k.namespaced, "kind": k.kind, "verbs": verbs})
		}
		if k.plural == "pods" {
			resources = append(resources, document{"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": verbs[:1]})
		}
	}
	return resources
}
