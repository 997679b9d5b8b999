"""The forms of values in messages, and the errors. Not here: the messages themselves (client.py, agent.py)."""
import base64, difflib, json, math, re, uuid

FOREVER = 1e9
PAYLOAD_BYTES = 256 * 1024  # of a payload, and of a result
MAY_DECIDE_LATER = {"WAGGLE_NO_LEADER", "WAGGLE_OUTCOME_UNKNOWN", "WAGGLE_UNREACHABLE", "WAGGLE_BACKPRESSURE",
                    "WAGGLE_JOURNAL_FULL"}


class WaggleError(Exception):
    """An error with a stable `code`, such as WAGGLE_NO_LEADER, and a `message` without the code.

    `field` names a wrong argument. `task` is the id of the task, in errors of `submit` and of a handle. `outcome` is
    the outcome of a task without a result. `newest` is the newest session of an agent whose join was refused."""

    def __init__(self, code, message, field=None, outcome=None, newest=None, task=None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.field, self.outcome, self.newest = code, message, field, outcome, newest
        self.task = task


class OnHold(WaggleError):
    """`resource` is on hold until `until` (seconds since 1970), longer than the request for its slots may wait.

    A handler may let the error pass: the attempt then counts towards no limit, and the task waits for the hold."""

    def __init__(self, message, resource, until):
        super().__init__("WAGGLE_ON_HOLD", message, "resources")
        self.resource, self.until = resource, until


def fresh():
    return uuid.uuid4().hex


def encoded(value, what, most):
    """Text as is, bytes as base64, any other value as JSON.
    @raises ValueError, TypeError for a value that is too large, or has no form in JSON"""
    if isinstance(value, (bytes, bytearray)):
        form = {"text": base64.b64encode(value).decode(), "encoding": "base64"}
    else:
        form = {"text": value if isinstance(value, str) else json.dumps(value, allow_nan=False)}
    size = len(form["text"].encode())
    if size > most:
        raise ValueError(f"the {what} has {size} bytes, above the maximum of {most}")
    return form


def as_json(message, what="the message", field=None):
    """@raises WaggleError WAGGLE_INVALID_MESSAGE for a value without a form in JSON"""
    try:
        return json.dumps(message, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise WaggleError("WAGGLE_INVALID_MESSAGE", f"{what}: {cause}", field) from None


def wired(options, names, of, others=()):
    """Options of the call `of`, under their names in messages. Callers may write an option in snake_case or as in
    messages. `others` are parameters of the call that an error may suggest.
    @raises WaggleError WAGGLE_INVALID_MESSAGE for an unknown name, or a value without a form in JSON"""
    spelled, given = {name: re.sub("([A-Z])", r"_\1", name).lower() for name in names}, {}
    wire_names = {**{snake: name for name, snake in spelled.items()}, **{name: name for name in names}}
    for option, value in options.items():
        name = wire_names.get(option)
        if name is None:
            near = difflib.get_close_matches(option, [*spelled.values(), *others, *names], 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join([*spelled.values(), *others])}"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"{of} has no option {option}; {hint}", option)
        if name in given:
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"{of} has {name} twice, in both spellings", option)
        as_json(value, f"{of}: {option}", option)
        given[name] = value
    return given


def require(count, least, call, field):
    """@returns the count. @raises WaggleError WAGGLE_INVALID_MESSAGE unless `count` is an int of at least `least`"""
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        message = f"{call}: {field}: must be a whole number of at least {least}, not {count!r}"
        raise WaggleError("WAGGLE_INVALID_MESSAGE", message, field)
    return count


def seconds_of(value, call, field="timeout"):
    """A maximum wait in seconds; None is without limit. @raises WaggleError WAGGLE_INVALID_MESSAGE"""
    if value is None:
        return FOREVER
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
        message = f"{call}: {field}: must be a number of seconds of at least 0, or None, not {value!r}"
        raise WaggleError("WAGGLE_INVALID_MESSAGE", message, field)
    return min(value, FOREVER)


def name_of(value, field, code="WAGGLE_INVALID_MESSAGE"):
    """A name that is part of a subject. @raises WaggleError for a name with other characters"""
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z0-9_-]{1,64}", value):
        raise WaggleError(code, f"{field}: must be 1–64 characters of A–Z a–z 0–9 _ -, not {value!r}", field)
    return value


def decoded(text, encoding):
    return base64.b64decode(text or "") if encoding == "base64" else text


def error_of(answer):
    """The error of a refusal. A message submits one task, so the error names the field without the task's number."""
    message, field = answer["message"].replace("tasks[0].", ""), answer.get("field", "").replace("tasks[0].", "")
    if "hold" in answer:
        return OnHold(message, answer["hold"]["resource"], answer["hold"]["until"] / 1000)
    return WaggleError(answer["code"], message, field or None, newest=answer.get("newest"))


def refusal(code, message, **more):
    """A refusal by this client, in the form of a coordinator's. `unsent`: the request was not published."""
    return {"ok": False, "code": code, "message": message, **more}


def forbidden(operation, subject, is_undone):
    """@param is_undone whether a coordinator received no message of the request; None for a subscription alone"""
    is_inbox = operation == "subscribe" and subject.startswith("_INBOX")
    parts = [f"the server does not permit this user to {operation} to {subject}"]
    if operation == "subscribe":
        parts.append("No answer can arrive" if is_inbox else "No message can arrive")
    if is_undone is not None:
        parts.append("Nothing was done" if is_undone else "The outcome is unknown: an earlier message had no answer")
    if is_inbox:
        parts.append("Set an inbox prefix that is permitted (inbox_prefix=, NATS_INBOX_PREFIX)")
    elif re.match(r"waggle\.v1\.[^.]+\.agent\.", subject):
        parts.append("Name a group that is permitted (group=)")
    elif re.match(r"waggle\.v1\.[^.]+\.project\.", subject):
        parts.append("Name a project that is permitted (project=, WAGGLE_PROJECT)")
    return WaggleError("WAGGLE_FORBIDDEN", ". ".join([*parts, "Ask the operator of the server for the permission"]))
