"""The site map."""

from django.urls import include, path

from config import health
from effects.views.callback import callback
from runs.api.api import api

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("accounts/", include("allauth.urls")),
    path("api/v1/", api.urls),
    path("callbacks/<slug:workspace>/<slug:channel>/", callback, name="callback"),
    path("", include("accounts.urls")),
    path("<slug:workspace>/", include("approvals.urls")),
    path("<slug:workspace>/", include("runs.urls")),
    path("<slug:workspace>/", include("effects.urls")),
    path("<slug:workspace>/", include("audit.urls")),
]
