"""File formats that several tasks or commands share."""
