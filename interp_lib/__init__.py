"""Exact interpolation with transformers: build the weights, evaluate them, certify them."""

from .certificates import Certificate as Certificate
from .certificates import verify as verify
from .fields import EXACT as EXACT
from .fields import FLOAT as FLOAT
from .fields import balls as balls
from .files import load as load
from .files import save as save
from .interpolation.critical import measured_critical_temperature as measured_critical_temperature
from .interpolation.four_phase import hardmax_interpolant as hardmax_interpolant
from .interpolation.mean_pooling import mean_interpolant as mean_interpolant
from .interpolation.resnet import resnet_interpolant as resnet_interpolant
from .interpolation.softmax import softmax_interpolant as softmax_interpolant
from .layers import Transformer as Transformer
from .sequences import Dataset as Dataset
from .sequences import DatasetError as DatasetError
from .sequences import hausdorff_distance as hausdorff_distance
