{{/* Name of everything in the release's namespace. */}}
{{- define "upgraderun.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
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

{{/* Secret with the certificate of the runner API; cert-manager's is of another type. */}}
{{- define "upgraderun.tlsSecret" -}}
{{- include "upgraderun.fullname" . -}}{{- ternary "-issued" "" (eq .Values.certificates.type "CertManager") -}}-tls
{{- end -}}

{{- define "upgraderun.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
Affinity of the operator's pods. A volume of the artifact store that is ReadWriteOnce can be mounted
on one node only, so the replicas must stay together; else they keep apart if they can.
*/}}
{{- define "upgraderun.affinity" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "upgraderun.selector" . | fromYaml)) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- if eq .Values.artifacts.accessMode "ReadWriteOnce" -}}
{{- $together := $affinity.podAffinity | default dict -}}
{{- $key := "requiredDuringSchedulingIgnoredDuringExecution" -}}
{{- $_ := set $together $key (append (get $together $key | default list) $term) -}}
{{- $_ := set $affinity "podAffinity" $together -}}
{{- else if not (hasKey $affinity "podAntiAffinity") -}}
{{- $apart := dict "weight" 100 "podAffinityTerm" $term -}}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list $apart)) -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* Spread constraints; one without a selector means the operator's pods. */}}
{{- define "upgraderun.spread" -}}
{{- if and .Values.topologySpreadConstraints (eq .Values.artifacts.accessMode "ReadWriteMany") -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "upgraderun.selector" . | fromYaml)) -}}
{{- $all := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $all = append $all (merge (deepCopy .) $selector) -}}
{{- end -}}
{{- toYaml $all -}}
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
