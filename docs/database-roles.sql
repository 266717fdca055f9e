-- The database and its two roles, for psql as a superuser. The owner migrates; the application can change no more than
-- it is granted, so history stays history. Passwords come from the environment:
--   OWNER_DB_PASSWORD=... APP_DB_PASSWORD=... psql -f docs/database-roles.sql "postgresql://postgres@host/postgres"
-- Other names: -v database=... -v owner=... -v app=... (then set APP_DB_ROLE to the last one as well).
\set ON_ERROR_STOP on
\if :{?database} \else \set database agentops \endif
\if :{?owner} \else \set owner agentops_owner \endif
\if :{?app} \else \set app agentops_app \endif
\getenv owner_password OWNER_DB_PASSWORD
\getenv app_password APP_DB_PASSWORD

CREATE ROLE :"owner" LOGIN PASSWORD :'owner_password';
CREATE ROLE :"app" LOGIN PASSWORD :'app_password';
CREATE DATABASE :"database" OWNER :"owner" TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO :"app";
