"""Changes of an experiment's numbers, made to see its checks fail."""


def put(*path, value):
    """Return a change at one place in nested dictionaries and lists; a function is applied to what is there."""

    def change(numbers):
        for key in path[:-1]:
            numbers = numbers[key]
        numbers[path[-1]] = value(numbers[path[-1]]) if callable(value) else value

    return change


def fill(*path, value):
    """Return a change of all entries of the list at a place to one value."""
    return put(*path, value=lambda found: [value] * len(found))


def every(*path, **values):
    """Return a change that updates every dictionary of the list at a place."""
    return put(*path, value=lambda found: [{**one, **values} for one in found])
