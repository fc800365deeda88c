"""Pages of plans, under `/{workspace}/`."""

from django.urls import path

from approvals.views import acts, export, inbox, letter, opt_outs, plan

urlpatterns = [
    path("inbox/", inbox.inbox, name="inbox"),
    path("inbox/count/", inbox.inbox_count, name="inbox-count"),
    path("plans/", plan.plans, name="plans"),
    path("plans/<int:pk>/", plan.plan, name="plan"),
    path("plans/<int:pk>/progress/", plan.progress, name="progress"),
    path("plans/<int:pk>/export/", export.export, name="plan-export"),
    path("plans/<int:pk>/rows/<int:position>/", letter.row, name="row"),
    path("plans/<int:pk>/rows/<int:position>/html/", letter.row_html, name="row-html"),
    path("plans/<int:pk>/approval/", acts.approval, name="approval"),
    path("plans/<int:pk>/rejection/", acts.rejection, name="rejection"),
    path("plans/<int:pk>/changes/", acts.changes, name="changes"),
    path("plans/<int:pk>/exclusion/", acts.exclusion, name="exclusion"),
    path("plans/<int:pk>/pause/", acts.pause, name="pause"),
    path("plans/<int:pk>/resumption/", acts.resumption, name="resumption"),
    path("plans/<int:pk>/stop/", acts.stop, name="stop"),
    path("opt-outs/", opt_outs.opt_outs, name="opt-outs"),
    path("opt-outs/addition/", opt_outs.addition, name="opt-out-addition"),
    path("opt-outs/<int:pk>/lifting/", opt_outs.lifting, name="opt-out-lifting"),
]
