{{/* Prints every document of the files that match .path, placed in the release's namespace. Roles that only enforce mode needs are left out of observe mode.
     .label: also put monitoringLabels on them. */}}
{{- define "dhc.documents" }}
{{- $runbook := ternary (printf "runbook_url: %s/" .root.Values.alerts.runbookURL) "runbook: docs/runbooks/" (ne .root.Values.alerts.runbookURL "") }}
{{- range $path, $_ := .root.Files.Glob .path }}
{{- range $text := regexSplit "(?m)^---$" ($.root.Files.Get $path | replace "device-health-system" $.root.Release.Namespace | replace "runbook: docs/runbooks/" $runbook) -1 }}
{{- $object := fromYaml $text }}
{{- $labels := dict "app.kubernetes.io/name" "device-health-controller" "app.kubernetes.io/part-of" "device-health-controller" }}
{{- if $.label }}{{- $labels = merge $labels $.root.Values.monitoringLabels }}{{- end }}
{{- $_ := set $object.metadata "labels" (merge $labels (default dict $object.metadata.labels)) }}
{{- if or (eq $.root.Values.mode "enforce") (ne (index $object.metadata.labels "device-health.io/mode" | default "") "enforce") }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
