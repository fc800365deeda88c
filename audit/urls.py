"""Pages of the record, under `/{workspace}/`."""

from django.urls import path

from audit import views

urlpatterns = [
    path("audit/", views.audit, name="audit"),
    path("audit/export/", views.audit_export, name="audit-export"),
]
