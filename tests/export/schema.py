"""As much of JSON Schema as sarif-2.1.0-part.schema.json uses, so that the check needs no package; where jsonschema is
installed it judges as well."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def problems(value, schema, root, path="$"):
    """Where the value is not what the schema says: a list of texts."""
    if "$ref" in schema:
        return problems(value, root["definitions"][schema["$ref"].rsplit("/", 1)[1]], root, path)
    kind, found = schema.get("type"), []
    if kind in TYPES and not isinstance(value, TYPES[kind]):
        return ["%s is no %s" % (path, kind)]
    if kind in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int if kind == "integer" else (int, float))):
        return ["%s is no %s" % (path, kind)]
    if "enum" in schema and value not in schema["enum"]:
        found.append("%s is %r" % (path, value))
    if "minimum" in schema and value < schema["minimum"]:
        found.append("%s is below %s" % (path, schema["minimum"]))
    if "anyOf" in schema and all(set(any_of["required"]) - set(value) for any_of in schema["anyOf"]):
        found.append("%s lacks all of %s" % (path, schema["anyOf"]))
    if kind == "array":
        if schema.get("uniqueItems") and any(value[i] in value[:i] for i in range(len(value))):
            found.append("%s has equal items" % path)
        for index, item in enumerate(value):
            found += problems(item, schema["items"], root, "%s[%d]" % (path, index))
    if kind == "object":
        found += ["%s lacks %s" % (path, name) for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            inner = schema["properties"].get(name, schema["additionalProperties"])
            if inner is False:
                found.append("%s has a property %s" % (path, name))
            elif inner is not True:
                found += problems(item, inner, root, "%s.%s" % (path, name))
    return found


def validate(value, schema):
    found = problems(value, schema, schema)
    assert not found, "\n".join(found[:20])
    try:
        import jsonschema
    except ImportError:
        return
    jsonschema.validate(value, schema)
