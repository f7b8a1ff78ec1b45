"""A web server that shows screens in browsers with an access token."""
