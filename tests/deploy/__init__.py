"""What lies in `deploy/`: manifests, image, dashboard, alert rules."""
