"""How callers prove who they are: tokens, OpenID Connect, Kubernetes, certificates."""
