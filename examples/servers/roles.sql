-- What an administrator does once, with psql: the roles, a database for indexes, and one for LangGraph's own state.
-- Passwords come from the environment.
\set ON_ERROR_STOP on
\getenv ingest_password INGEST_PASSWORD
\getenv search_password SEARCH_PASSWORD
\getenv langgraph_password LANGGRAPH_PASSWORD

CREATE ROLE ingester LOGIN PASSWORD :'ingest_password';
CREATE ROLE searcher LOGIN PASSWORD :'search_password';
CREATE ROLE langgraph LOGIN PASSWORD :'langgraph_password';

CREATE DATABASE library OWNER ingester ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE library FROM PUBLIC;
GRANT CONNECT ON DATABASE library TO searcher;

CREATE DATABASE langgraph OWNER langgraph ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE langgraph FROM PUBLIC;

\connect library
CREATE EXTENSION vector;
CREATE EXTENSION pg_trgm;
-- Whatever index the ingester makes in this database, the searcher may read.
ALTER DEFAULT PRIVILEGES FOR ROLE ingester GRANT USAGE ON SCHEMAS TO searcher;
ALTER DEFAULT PRIVILEGES FOR ROLE ingester GRANT SELECT ON TABLES TO searcher;

\connect langgraph
CREATE EXTENSION vector;
