"""Text from elsewhere: parsed within limits, made fit for a terminal."""
