"""What was observed and advised, republished as metrics for Prometheus and Grafana."""
