"""Signatures of callbacks: the scheme's own example, and everything that is not quite it."""

import base64

import pytest

from effects.signatures import OLDEST, is_signed, is_timely, read_secrets, sign

# The example of the Standard Webhooks specification.
SECRET, EVENT, AT, BODY = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "1614265330",
    b'{"test": 2432232314}',
)
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = "whsec_" + base64.b64encode(b"x" * 24).decode()


def holds(signatures: str = SIGNATURE, *, event: str = EVENT, at: str = AT, body: bytes = BODY, secrets: str = SECRET) -> bool:
    return is_signed(signatures, event_id=event, timestamp=at, body=body, keys=read_secrets(secrets))


def test_it_is_the_signature_of_the_published_example() -> None:
    assert sign(EVENT, AT, BODY, read_secrets(SECRET)[0]) == SIGNATURE
    assert holds()


@pytest.mark.parametrize(
    "changed",
    [
        {"event": EVENT + "x"},
        {"event": ""},
        {"at": "1614265331"},
        {"body": b'{"test": 2432232315}'},
        {"body": BODY + b"\n"},
        {"body": b'{"test":2432232314}'},
        {"body": b""},
        {"secrets": OTHER},
        {"signatures": ""},
        {"signatures": "v1,"},
        {"signatures": "v1"},
        {"signatures": SIGNATURE.removeprefix("v1,")},
        {"signatures": SIGNATURE.replace("v1,", "v2,")},
        {"signatures": SIGNATURE.replace("v1,", "v1a,")},
        {"signatures": SIGNATURE[:-2]},
        {"signatures": SIGNATURE.lower()},
        {"signatures": SIGNATURE + "="},
        {"signatures": f"{SIGNATURE},{SIGNATURE}"},
        {"signatures": "é" + SIGNATURE},
        {"signatures": " ".join(["v1,x"] * 8 + [SIGNATURE])},
    ],
)
def test_a_changed_byte_anywhere_is_no_signature(changed: dict[str, str | bytes]) -> None:
    assert not holds(**changed)  # type: ignore[arg-type]


def test_where_one_part_ends_is_part_of_what_is_signed_for_a_body_that_is_an_object() -> None:
    """Shifting the dots leaves a timestamp that is no number, or a body that is no JSON object: both are refused elsewhere."""
    assert is_signed(SIGNATURE, event_id=f"{EVENT}.{AT}", timestamp=BODY.decode(), body=b"", keys=read_secrets(SECRET)) is False
    assert not is_timely(BODY.decode(), now=float(AT))


def test_either_side_may_change_its_secret_without_a_gap() -> None:
    assert holds(f"v1,AAAA {SIGNATURE}")
    assert holds(f"{sign(EVENT, AT, BODY, b'x' * 24)} v1a,ZWQyNTUxOQ==", secrets=f"{SECRET} {OTHER}")
    assert holds(secrets=f"{OTHER},{SECRET}")
    assert holds(secrets=f"{OTHER}, {SECRET}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begin with whsec_"),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begin with whsec_"),
        ("whsec_", "24 to 64 bytes, not 0"),
        ("whsec_c2hvcnQ=", "24 to 64 bytes, not 5"),
        ("whsec_" + base64.b64encode(b"x" * 65).decode(), "24 to 64 bytes, not 65"),
        ("whsec_not base64!", "base64|begin"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "base64"),
        ("whsec_MfKQ9r8GKYqrTwjU-D8ILPZIo2LaLaSw", "base64"),
        (f"{SECRET} {OTHER} {SECRET}", "at most two"),
    ],
)
def test_a_secret_that_cannot_be_one_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_secrets(text)


@pytest.mark.parametrize(
    ("timestamp", "timely"),
    [
        ("1000000", True),
        (str(1_000_000 - int(OLDEST)), True),
        (str(1_000_000 + int(OLDEST)), True),
        (str(1_000_000 - int(OLDEST) - 1), False),
        (str(1_000_000 + int(OLDEST) + 1), False),
        ("", False),
        ("-1000000", False),
        ("+1000000", False),
        ("1000000.0", False),
        (" 1000000", False),
        ("1e6", False),
        ("１００００００", False),
        ("0x0f4240", False),
        ("1_000_000", False),
        ("9" * 400, False),
        ("nan", False),
    ],
)
def test_a_stamp_is_whole_seconds_near_our_clock(timestamp: str, timely: bool) -> None:
    assert is_timely(timestamp, now=1_000_000.0) is timely
