"""Send a delivery as e-mail, in a thread."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from leases.domain.notify import texts
from leases.domain.notify.message import Message
from leases.domain.notify.target import Security, Target
from leases.notify.outcome import DeliveryOutcome

TIMEOUT_SECONDS = 10.0  # of each step of the exchange


def send_mail(
    target: Target, messages: Sequence[Message], *, delivery: str, now: datetime
) -> DeliveryOutcome:
    """Send once. Never raises for what the network or the server does."""
    mail = _mail(target, messages, delivery, now)
    try:
        _exchange(target, mail)
    except smtplib.SMTPAuthenticationError as error:
        return DeliveryOutcome(f"It refused the user name or the password ({error.smtp_code}).")
    except smtplib.SMTPRecipientsRefused:
        return DeliveryOutcome("It refused all recipients.")
    except smtplib.SMTPResponseException as error:
        return DeliveryOutcome(f"It answered {error.smtp_code}.")
    except smtplib.SMTPNotSupportedError:
        return DeliveryOutcome("It offers no STARTTLS or no sign-in. Choose another encryption.")
    except ssl.SSLError:
        return DeliveryOutcome(
            "The encrypted connection failed. Check the encryption and the certificate."
        )
    except TimeoutError:
        return DeliveryOutcome(f"It did not answer within {TIMEOUT_SECONDS:.0f} s.")
    except smtplib.SMTPException as error:
        return DeliveryOutcome(f"The exchange failed ({type(error).__name__}).")
    except OSError as error:
        return DeliveryOutcome(f"It cannot be reached: {error.strerror or type(error).__name__}.")
    return DeliveryOutcome()


def _exchange(target: Target, mail: EmailMessage) -> None:
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if target.security is Security.TLS:
        server = smtplib.SMTP_SSL(
            target.host, target.port, timeout=TIMEOUT_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(target.host, target.port, timeout=TIMEOUT_SECONDS)
    with server:
        if target.security is Security.STARTTLS:
            server.starttls(context=context)
        if target.username:
            server.login(target.username, target.password)
        server.send_message(mail, target.sender, list(target.to))


def _mail(
    target: Target, messages: Sequence[Message], delivery: str, now: datetime
) -> EmailMessage:
    """The Message-ID is the same at each attempt, so mail programs show doubles once."""
    mail = EmailMessage()
    mail["Subject"] = texts.title_of_all(messages)
    mail["From"] = target.sender
    mail["To"] = ", ".join(target.to)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{delivery}@leaseboard>"
    mail["Leaseboard-Delivery"] = delivery
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{texts.text_of_all(messages)}\n\nDelivery {delivery}\n")
    return mail
