"""Django's settings, made from `dashboard.config`."""

import sys
from datetime import timedelta
from pathlib import Path

import dj_database_url
from csp.constants import NONCE, NONE, SELF

from dashboard.config import ConfigError, load, secrets_of
from dashboard.log_lines import hide, redact
from dashboard.serving import data_directory
from leases.private_files import looking

try:
    LEASEBOARD = load()
    KEPT_IN = data_directory.open_data_directory(LEASEBOARD.data)
    SECRET_KEY = LEASEBOARD.secret_key or data_directory.secret_key(KEPT_IN)
except (ConfigError, data_directory.BadDataDirectory, data_directory.BadSecretKey) as error:
    sys.exit(redact(str(error)))
hide(SECRET_KEY, *secrets_of(LEASEBOARD))

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = False
ALLOWED_HOSTS = list(LEASEBOARD.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(LEASEBOARD.trusted_origins)

INSTALLED_APPS = [
    "dashboard.apps.BoardAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",  # the templates of widgets
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "leases",
    "dashboard.apps.DashboardConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "dashboard.access.guards.ReadableRequests",  # before whatever reads parameters
    "django.contrib.sessions.middleware.SessionMiddleware",
    "dashboard.health.KnownHosts",  # Django's CommonMiddleware
    "django.middleware.csrf.CsrfViewMiddleware",
    "dashboard.access.known_rights.SignedIn",  # Django's AuthenticationMiddleware
    "dashboard.access.proxy.ProxySignIn",  # after it: replaces its user
    "dashboard.access.links.LastSeen",
    "dashboard.access.api_tokens.BearerMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.pages.errors.WrongMethod",
    "dashboard.parts.page_context.ClockStamp",  # after the messages, which it writes
    "axes.middleware.AxesMiddleware",  # last: it replaces the answer of a refused sign-in
]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign_in"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "dashboard.parts.page_context.PageTemplates",
        "NAME": "django",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "dashboard.parts.page_context.page",
            ],
        },
    },
]

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-8000;",
}
DATABASES = {
    "default": dj_database_url.parse(
        LEASEBOARD.database_url or f"sqlite:///{LEASEBOARD.data / 'leaseboard.sqlite3'}",
    ),
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
    # A file, because several threads and processes of the live-server tests open it.
    DATABASES["default"]["TEST"] = {"NAME": str(LEASEBOARD.data / "test.sqlite3")}
    SQLITE_FILE: Path | None = Path(DATABASES["default"]["NAME"])
    if data_directory.look_only:
        DATABASES["default"]["NAME"] = looking(Path(DATABASES["default"]["NAME"]))
else:
    SQLITE_FILE = None
data_directory.keep_private(LEASEBOARD.data, SQLITE_FILE)
# A kubeconfig that is uploaded must not lie on a disk. What is larger is no file of ours.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_PERMISSIONS = 0o600  # of the files that collectstatic writes into DATA
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: it refuses before a password is checked
    "django.contrib.auth.backends.ModelBackend",
]
AXES_HANDLER = "dashboard.access.sign_in_limits.SignInLimits"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=1)
AXES_LOCKOUT_PARAMETERS = ["ip_address", "username"]
AXES_LOCKOUT_CALLABLE = "dashboard.access.sign_in_limits.refuse"
AXES_CLIENT_IP_CALLABLE = "dashboard.access.security_log.address_of"
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # or a flood would lock people out for ever
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "csrfmiddlewaretoken", "next"]
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "dashboard.access.sign_in_links.EndSignInLinks"},
]

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = LEASEBOARD.data / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "staticfiles": {"BACKEND": "dashboard.serving.pages_port.HashedStorage"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "dashboard.access.sessions"
BOARD_MARK = data_directory.mark_of(SECRET_KEY)
SESSION_COOKIE_NAME = f"sessionid_{BOARD_MARK}"
CSRF_COOKIE_NAME = f"csrftoken_{BOARD_MARK}"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LEASEBOARD.https
SECURE_SSL_REDIRECT = LEASEBOARD.https
SECURE_HSTS_SECONDS = LEASEBOARD.hsts_seconds if LEASEBOARD.https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = LEASEBOARD.hsts_subdomains
SECURE_HSTS_PRELOAD = LEASEBOARD.hsts_preload
# What browsers remember for other hosts too is the choice of whoever owns the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if LEASEBOARD.https else None
# Probes and Prometheus speak plain HTTP to the pod, also behind a TLS proxy.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        # Pages answer 503 while the database is away, and probes before an end: no log lines.
        "failures": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", 500) != 503,
        },
        "sentences": {"()": "dashboard.log_lines.SentenceFilter"},
        "flood": {"()": "dashboard.log_lines.FloodFilter"},
        "repeats": {"()": "dashboard.log_lines.RepeatFilter"},
    },
    "formatters": {
        "line": {
            "()": "dashboard.log_lines.RedactingFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "dashboard.log_lines.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json" if LEASEBOARD.log_format == "json" else "line",
            "filters": ["flood", "repeats", "sentences"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "leases": {"level": "INFO"},
        "dashboard": {"level": "INFO"},
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "axes": {"level": "ERROR"},  # dashboard.access.sign_in_limits logs it once
        "django.request": {"level": "ERROR", "filters": ["failures"]},
    },
}
