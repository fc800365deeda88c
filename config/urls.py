"""The site map."""

from django.urls import include, path

from config import health

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("accounts/", include("allauth.urls")),
]
