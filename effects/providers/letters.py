"""A frozen content as a mail message. Deterministic but for its Date: parts, boundary and Message-ID come from content and key."""

import hashlib
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import formatdate, parseaddr

from effects.providers.base import Delivery

PLAIN = SMTP.clone(cte_type="7bit")  # every relay carries it as it is


def message_id(key: str, epoch: int, *, sender: str) -> str:
    """`<40 hex digits@sender's domain>`, the same for every attempt at one effect; bounces and look-ups quote it."""
    domain = parseaddr(sender)[1].rpartition("@")[2] or "signoff.invalid"
    return f"<{hashlib.sha256(f'{key}:{epoch}'.encode()).hexdigest()[:40]}@{domain}>"


def as_mail(delivery: Delivery, *, sender: str) -> tuple[str, bytes]:
    """The envelope sender and the message's bytes (CRLF line ends, dots not yet stuffed)."""
    content = delivery.content
    message = EmailMessage(policy=PLAIN if content.to.isascii() else SMTPUTF8)
    message["From"] = sender
    message["To"] = content.to
    message["Subject"] = content.subject
    message["Date"] = formatdate(usegmt=True)
    message["Message-ID"] = message_id(delivery.key, delivery.epoch, sender=sender)
    message["X-Signoff-Key"] = f"{delivery.key}:{delivery.epoch}"
    message.set_content(content.text)
    if content.html:
        message.add_alternative(content.html, subtype="html")
        message.set_boundary(f"=_{hashlib.sha256(delivery.key.encode()).hexdigest()[:32]}")
    return parseaddr(sender)[1], message.as_bytes()
