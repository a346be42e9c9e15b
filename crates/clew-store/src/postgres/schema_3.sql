-- At most one row: the application that everything in here is of.
CREATE TABLE clew.owner (application_id BIGINT NOT NULL);
