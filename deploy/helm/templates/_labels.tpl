{{- define "leaseboard.selector" -}}
app.kubernetes.io/name: leaseboard
{{- end }}
{{- define "leaseboard.labels" -}}
{{ include "leaseboard.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
{{- define "leaseboard.metadata" -}}
name: {{ .Values.name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "leaseboard.labels" . | nindent 2 }}
{{- end }}
{{- define "leaseboard.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}
