{{- define "tfyard.name" -}}
{{ .Values.fullnameOverride | default "tf-job-operator" }}
{{- end }}

{{- define "tfyard.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "tfyard.name" .) }}
{{- end }}

{{- define "tfyard.selector" -}}
app.kubernetes.io/component: operator
app.kubernetes.io/name: tfyard
{{- end }}

{{- define "tfyard.labels" -}}
{{ include "tfyard.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tfyard.page" -}}
{{ include "tfyard.name" . }}-page
{{- end }}

{{- define "tfyard.pageSelector" -}}
app.kubernetes.io/component: page
app.kubernetes.io/name: tfyard
{{- end }}

{{- define "tfyard.pageLabels" -}}
{{ include "tfyard.labels" . | replace "component: operator" "component: page" }}
{{- end }}

{{/* `image` is a map, or one string as in the chart of 2017. */}}
{{- define "tfyard.image" -}}
{{- if kindIs "string" .Values.image -}}
{{ .Values.image }}
{{- else -}}
{{- with .Values.image.registry }}{{ . }}/{{ end -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "tfyard.pullPolicy" -}}
{{- if not (kindIs "string" .Values.image) }}{{ .Values.image.pullPolicy }}{{ end -}}
{{- end }}

{{/* The ConfigMap with the operator's config file; empty: none. */}}
{{- define "tfyard.config" -}}
{{- if .Values.config.existing }}{{ .Values.config.existing }}
{{- else if .Values.cloud }}tf-job-operator-config{{ end -}}
{{- end }}

{{- define "tfyard.cloudConfig" -}}
{{- $file := printf "files/clouds/%s.yaml" .Values.cloud -}}
{{- $text := .Files.Get $file -}}
{{- if not $text }}{{ fail (printf "cloud: %s is unknown; azure or gke" .Values.cloud) }}{{ end -}}
{{ $text }}
{{- end }}

{{- define "tfyard.rbac" -}}
{{- if hasKey .Values.rbac "install" }}{{ if .Values.rbac.install }}true{{ end }}{{ else if .Values.rbac.create }}true{{ end -}}
{{- end }}

{{/* Rules for TFJobs, what they consist of, and what the chosen options need. Arguments: (dict "root" . "wide" bool) */}}
{{- define "tfyard.rules" -}}
{{- $files := .root.Files -}}
{{ $files.Get "files/rules/operator.yaml" | trim }}
{{- if .root.Values.rbac.readLogs }}
{{ $files.Get "files/rules/logs.yaml" | trim }}
{{- end }}
{{- if .wide }}
{{ $files.Get "files/rules/nodes.yaml" | trim }}
{{- end }}
{{- if ne .root.Values.gangScheduler "none" }}
{{ $files.Get (printf "files/rules/gang-%s.yaml" .root.Values.gangScheduler) | trim }}
{{- end }}
{{- end }}
