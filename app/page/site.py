"""Every page there is."""

from app.page import assets, estimates, models, overview, sign_in, trial, versions

PAGES = (overview, models, versions, estimates, trial, sign_in, assets)
