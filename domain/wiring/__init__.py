"""Start-up: the functions and schedules of the domain that other apps and django-q2 call."""
