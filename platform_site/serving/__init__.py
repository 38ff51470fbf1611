"""What stands behind `make run`: prepare the instance, start web server and worker, watch them, stop them."""
