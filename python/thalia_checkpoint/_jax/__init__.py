"""Arrays and trees of jax."""
