"""Every page there is."""

from app.page import (
    assets,
    estimates,
    models,
    monitors,
    overview,
    reference,
    sign_in,
    trial,
    versions,
)

PAGES = (overview, monitors, models, versions, estimates, trial, sign_in, reference, assets)
