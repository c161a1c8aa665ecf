package standin

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Control is a second, plain HTTP server by which a process beside this one asks for failures and reads what was counted;
// README.md has its requests.
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	type number func(key string) float64
	handle := func(path string, f func(n number) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			json.NewEncoder(w).Encode(f(func(key string) float64 {
				v, _ := strconv.ParseFloat(r.FormValue(key), 64)
				return v
			}))
		})
	}
	handle("GET /stats", func(number) any { return s.Stats() })
	handle("GET /latency", func(n number) any { return s.latency(int(n("batch")), n("probes") > 0) })
	handle("GET /evictions", func(number) any { return s.Evictions() })
	handle("POST /rate", func(n number) any { go s.Rate(n("r"), n("s")); return "started" })
	handle("POST /unhealthy", func(n number) any {
		pause := time.Duration(0)
		if n("over") > 0 {
			pause = time.Duration(n("over") / n("k") * 1e9)
		}
		return map[string]int{"batch": s.Fail(int(n("k")), pause)}
	})
	handle("POST /heal", func(number) any { return map[string]int{"healed": s.Heal()} })
	handle("POST /compact", func(number) any { s.Compact(); return "compacted" })
	handle("POST /drop", func(number) any { s.Drop(); return "dropped" })
	return mux
}
