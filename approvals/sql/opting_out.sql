-- Who waits for whom when opt-outs change. Locks last until the end of the transaction.

-- writing: one at a time notes and lifts in a workspace, so that neither overlooks the other.
SELECT pg_advisory_xact_lock(hashtext('signoff opt-outs written'), %(workspace_id)s)

-- lifting: not while a plan is being proposed, whose checks tell reviewers what is left out (see plans.sql).
SELECT pg_advisory_xact_lock(hashtext('signoff opt-outs shown'), %(workspace_id)s)
