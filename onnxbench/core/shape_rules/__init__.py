"""How each family of operators makes its sizes from those of its inputs."""
