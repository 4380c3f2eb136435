"""What all tests share: how hypothesis draws."""

from hypothesis import settings

# A loaded machine is no fault of the code: how long something takes is proven where it is measured.
settings.register_profile("dagkit", deadline=None, print_blob=True)
# `pytest --hypothesis-profile=thorough` looks longer.
settings.register_profile("thorough", settings.get_profile("dagkit"), max_examples=2000)
settings.load_profile("dagkit")
