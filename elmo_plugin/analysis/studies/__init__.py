"""
Studies: experiments times seeds times shares of the training data, trained, compared and drawn.
"""
