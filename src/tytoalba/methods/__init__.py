"""The methods, by name. To add one: a file with a `Method`, and a line here; tables and tests pick it up."""

from __future__ import annotations

from tytoalba.methods.method import Memory, Method, Task

METHODS: dict[str, type[Method]] = {}

__all__ = ["METHODS", "Memory", "Method", "Task"]
