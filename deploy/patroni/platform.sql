-- The role and the database of the platform, which Patroni makes once, when it makes the cluster (post_bootstrap of
-- patroni.yml): /etc/patroni/platform.sql on each server, with a password in place of the dots. It belongs to the user
-- postgres, mode 0600.
\set ON_ERROR_STOP on
CREATE ROLE platform LOGIN PASSWORD '...';
CREATE DATABASE platform OWNER platform;
