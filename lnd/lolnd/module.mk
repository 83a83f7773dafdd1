# Delivery to oneself.
