"""Django settings, flat. Every value the environment may set stands in the first block, and nowhere else."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import bootstrap
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

BASE_DIR = Path(__file__).resolve().parent.parent

# --- the environment ---------------------------------------------------------------------------------


def _flag(name: str, default: bool) -> bool:
    return os.environ.get(name, "1" if default else "0").strip().lower() in {"1", "true", "yes", "on"}


def _required(name: str, advice: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(f"{name} is not set: {advice} (`make up` sets it for you).")
    return value


DEBUG = _flag("DEBUG", False)
SECRET_KEY = _required("SECRET_KEY", "a long random text that signs sessions")
ALLOWED_HOSTS = [host.strip() for host in os.environ.get("ALLOWED_HOSTS", "").split(",") if host.strip()]
DATABASE_URL = _required("DATABASE_URL", "postgresql://user:password@host:port/name")
REDIS_URL = _required("REDIS_URL", "redis://:password@host:port/0")
SIGNOFF_ENCRYPTION_KEYS = [key for key in os.environ.get("SIGNOFF_ENCRYPTION_KEYS", "").split(",") if key]
SIGNOFF_DATA_DIR = Path(os.environ.get("SIGNOFF_DATA_DIR", BASE_DIR / ".signoff"))
# For `manage.py roles` alone: the passwords of the database roles that web and worker log in as, where they are not to be made up.
SIGNOFF_WEB_PASSWORD = os.environ.get("SIGNOFF_WEB_PASSWORD", "")
SIGNOFF_WORKER_PASSWORD = os.environ.get("SIGNOFF_WORKER_PASSWORD", "")
# With DEBUG=1 a channel may reach a provider on loopback (the demo mailbox); never in production.
SIGNOFF_LOOPBACK_PROVIDERS = DEBUG
# Where a test kills or stops a worker (effects/failpoints.py).
SIGNOFF_FAILPOINTS = os.environ.get("SIGNOFF_FAILPOINTS", "")
if SIGNOFF_FAILPOINTS and not DEBUG:
    raise ImproperlyConfigured("SIGNOFF_FAILPOINTS is set: it makes workers die on purpose, for tests. Unset it.")
# And web and worker may log in to PostgreSQL as the owner of the tables; in production they refuse to start as such.
SIGNOFF_OWNER_MAY_SERVE = DEBUG

LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]", "testserver"}
if DEBUG and not set(ALLOWED_HOSTS) <= LOCAL_NAMES:
    raise ImproperlyConfigured("DEBUG=1 is refused together with a public ALLOWED_HOSTS: unset DEBUG, or name only localhost.")
if not DEBUG and not ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS is not set: name the host that people type to reach Signoff.")
if not SIGNOFF_ENCRYPTION_KEYS:
    raise ImproperlyConfigured(
        "SIGNOFF_ENCRYPTION_KEYS is not set: one or more Fernet keys, newest first, that encrypt channel secrets."
    )

# --- applications ------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "config",
    "runs",
    "approvals",
    "effects",
    "audit",
    "accounts",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "django_htmx",
    "heroicons",
    "ninja",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.context.place",
            ],
            "builtins": ["django.templatetags.static", "heroicons.templatetags.heroicons"],
        },
    }
]

# --- PostgreSQL decides, Redis hints ------------------------------------------------------------------

_database = urlsplit(DATABASE_URL)
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(_database.path.lstrip("/")),
        "USER": unquote(_database.username or ""),
        "PASSWORD": unquote(_database.password or ""),
        "HOST": _database.hostname or "",
        "PORT": str(_database.port or 5432),
        # No request-wide transaction: a verb opens its own, and a provider call happens in none.
        "ATOMIC_REQUESTS": False,
        "CONN_HEALTH_CHECKS": True,
        # Attempts to connect again are further and further apart, and begin anew after `reconnect_timeout`: without that, a database that
        # was away for a minute would be away for a minute more.
        "OPTIONS": {"pool": {"min_size": 1, "max_size": 12, "timeout": 10, "reconnect_timeout": 8}},
    }
}

# A message is a hint: it may be lost or repeated, so it is taken one at a time and acknowledged at once. Tasks wait on threads while
# one event loop sends for all of them; no time limit kills a thread, every wait of a task has an end of its own: a turn (5 s), and
# its last call (900 s at most), far under the visibility timeout.
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = 16  # four more than the channels served at once: announcements and sweeps find a thread
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE = {
    "announce due chunks": {"task": "approvals.announce", "schedule": 2.0, "options": {"expires": 10}},
    "sweep overdue effects": {"task": "effects.sweep", "schedule": 2.0, "options": {"expires": 10}},
}

# --- people ------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "accounts.adapter.ClosedDoor"
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"

# --- the browser: strict from the first commit ---------------------------------------------------------

SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "frame-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}
PERMISSIONS_POLICY: dict[str, list[str]] = {
    name: [] for name in ("camera", "geolocation", "microphone", "payment", "usb", "browsing-topics")
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG
SESSION_COOKIE_NAME = "sessionid" if DEBUG else "__Host-sessionid"
CSRF_COOKIE_NAME = "csrftoken" if DEBUG else "__Host-csrftoken"
if not DEBUG:
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]

# --- files, words, logs --------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = SIGNOFF_DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static", ("bootstrap", bootstrap.__path__[0])]
STORAGES = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# A plan arrives as a stream of any length; forms of people stay small.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
