"""The command `tyto`: each module is a group of commands, `app` puts them together."""
