{{/* Name of everything in the release's namespace. */}}
{{- define "upgraderun.fullname" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "upgraderun.labels" -}}
app.kubernetes.io/name: upgraderun-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: upgraderun-operator
{{- end -}}

{{- define "upgraderun.selector" -}}
app.kubernetes.io/name: upgraderun-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* User name of the operator, as admission sees it. */}}
{{- define "upgraderun.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "upgraderun.fullname" . }}
{{- end -}}

{{- define "upgraderun.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* apiVersion of MutatingAdmissionPolicy on this server; empty where there is none. */}}
{{- define "upgraderun.mutatingVersion" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
admissionregistration.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
admissionregistration.k8s.io/v1beta1
{{- end -}}
{{- end -}}
