"""Pages of runs, under `/{workspace}/`."""

from django.urls import path

from runs import views

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("runs/<int:pk>/", views.run, name="run"),
]
