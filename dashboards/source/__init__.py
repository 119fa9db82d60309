"""The dashboards, as code; `python -m dashboards.source --write` makes `dashboards/grafana/`."""
