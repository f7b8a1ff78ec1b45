"""File formats that several tasks or commands share; what they mean to a task stands in `searchapp.tasks`."""
