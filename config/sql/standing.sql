-- What a role may do, read from the catalogues of PostgreSQL.

-- powers: what the role that logged in is or may do, which no web or worker needs. Empty tables (before `migrate`) tell nothing.
SELECT
    r.rolname,
    r.rolsuper,
    r.rolbypassrls,
    r.rolcreaterole,
    EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'p')
            AND pg_has_role(r.oid, c.relowner, 'MEMBER')) AS owns,
    coalesce(has_table_privilege(r.oid, to_regclass('approvals_decision'), 'INSERT'), false) AS decides,
    coalesce(has_column_privilege(r.oid, to_regclass('effects_effect'), 'state', 'INSERT'), false) AS reserves
FROM pg_roles r WHERE r.rolname = session_user

-- rights: every right that one of these roles, or everybody, holds on something of ours, in words.
WITH held (thing, acl) AS (
    SELECT c.oid::regclass::text, c.relacl FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT a.attrelid::regclass || '.' || a.attname, a.attacl
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped
    UNION ALL
    SELECT p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proowner = current_user::regrole
    UNION ALL
    SELECT 'schema public', nspacl FROM pg_namespace WHERE nspname = 'public'
    UNION ALL
    SELECT 'database ' || datname, coalesce(datacl, acldefault('d', datdba)) FROM pg_database WHERE datname = current_database()
)
SELECT coalesce(r.rolname, 'everybody') || ' may ' || a.privilege_type || ' ' || h.thing
FROM held h, aclexplode(h.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE a.grantee = 0 OR r.rolname = ANY(%(roles)s)

-- excess: what these roles are beyond their grants: more than a log-in, a member of another role, or an owner.
SELECT r.rolname || ' is more than a role that logs in' FROM pg_roles r
WHERE r.rolname = ANY(%(roles)s)
  AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls OR NOT r.rolcanlogin)
UNION ALL
SELECT r.rolname || ' is a member of ' || m.roleid::regrole FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
WHERE r.rolname = ANY(%(roles)s)
UNION ALL
SELECT DISTINCT r.rolname || ' owns something in this cluster' FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o' AND r.rolname = ANY(%(roles)s)

-- existing: which of these roles there are.
SELECT rolname FROM pg_roles WHERE rolname = ANY(%(roles)s)
