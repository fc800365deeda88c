"""Pages of the ledger, under `/{workspace}/`."""

from django.urls import path

from effects.views import acts, channels, desk, effect, epochs, ledger

urlpatterns = [
    path("unknown/", desk.unknown, name="unknown"),
    path("effects/", ledger.effects, name="effects"),
    path("effects/<int:pk>/", effect.effect, name="effect"),
    path("effects/<int:pk>/resolution/", acts.resolution, name="resolution"),
    path("effects/<int:pk>/revocation/", acts.revocation, name="revocation"),
    path("effects/<int:pk>/news/", acts.news, name="news"),
    path("effects/<int:pk>/epoch/", acts.epoch, name="epoch"),
    path("effects/<int:pk>/look-up/", acts.look_up, name="look-up"),
    path("epochs/", epochs.epochs, name="epochs"),
    path("epochs/export/", epochs.epochs_export, name="epochs-export"),
    path("channels/", channels.channels, name="channels"),
    path("channels/<slug:slug>/pause/", channels.channel_pause, name="channel-pause"),
    path("channels/<slug:slug>/resumption/", channels.channel_resumption, name="channel-resumption"),
    path("pause/", channels.workspace_pause, name="workspace-pause"),
    path("resumption/", channels.workspace_resumption, name="workspace-resumption"),
]
