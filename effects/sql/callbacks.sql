-- Callbacks at their door: the one statement by which the web keeps what a provider signed.

-- keep: raw, before anybody acts on it. An event that is kept already stays as it is; then no row comes back.
INSERT INTO effects_callback (workspace_id, channel_id, event_id, effect_id, kind, exact, receipt, reason, said_at, raw)
VALUES (%(workspace_id)s, %(channel_id)s, %(event_id)s, %(effect_id)s, %(kind)s, %(exact)s, %(receipt)s, %(reason)s, %(said_at)s, %(raw)s)
ON CONFLICT (channel_id, event_id) DO NOTHING
RETURNING id
