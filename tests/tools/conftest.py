from tests.outside import outside as outside
from tests.outside import sandbox as sandbox
