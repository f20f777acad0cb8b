#!/bin/sh
# Run once by the image of PostgreSQL, when the database is made: a role that owns its database and nothing else. It is no
# superuser and may not bypass row-level security, so that the database itself keeps projects apart.
set -eu
psql --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres --set=password="$RINGTRUE_DB_PASSWORD" <<'SQL'
CREATE ROLE ringtrue LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE ringtrue OWNER ringtrue ENCODING 'UTF8';
REVOKE ALL ON DATABASE ringtrue FROM PUBLIC;
SQL
