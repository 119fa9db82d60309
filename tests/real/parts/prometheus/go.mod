module parts/prometheus

go 1.25.0

require (
	github.com/prometheus/alertmanager v0.31.0
	github.com/prometheus/prometheus v0.310.0
)

replace cloud.google.com/go => cloud.google.com/go v0.123.0
