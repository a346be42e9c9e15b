-- For compose.yaml: the role's password, from the environment.
\getenv password CLEW_DB_PASSWORD
ALTER ROLE clew PASSWORD :'password';
