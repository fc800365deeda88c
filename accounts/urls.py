"""Pages of people and their way in."""

from django.urls import path

from accounts import views

urlpatterns = [
    path("", views.home, name="home"),
    path("theme/", views.theme, name="theme"),
    path("<slug:workspace>/people/", views.people, name="people"),
]
