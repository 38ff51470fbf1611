"""What every app stands on and what knows none of them: errors, guids, field types, entity bases, version stamps."""
