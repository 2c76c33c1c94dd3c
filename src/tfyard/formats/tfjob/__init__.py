"""Every published version of TFJob, to and from the one Job."""
